"""What every running part needs: clocks and waiting. Knows no store and no task."""
