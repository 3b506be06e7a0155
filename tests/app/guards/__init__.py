"""What processes remember of guards."""
