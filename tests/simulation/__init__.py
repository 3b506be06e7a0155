"""Workers, clients and duties as they are, on the oracle, in virtual time; a seed decides everything else."""
