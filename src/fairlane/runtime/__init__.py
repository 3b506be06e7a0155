"""What every running process needs: clocks, loops, threads, signals, logs. Knows no store and no task."""
