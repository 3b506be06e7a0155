"""Real faults on real files: kills, crowds, full disks, torn writes, files that vanish, forks.

The normal run is small. ``FAIRLANE_FAULTS=25`` multiplies every count (25 gives at least 200 kills, 100 full
disks and 375 torn writes); ``FAIRLANE_SEED=7`` repeats the draws of a run that has printed its seed; ids and
the moments of processes are drawn anew.
"""
