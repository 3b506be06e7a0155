"""`fairlane dead`: look at dead letters, and decide about one of them or all that match.

`group.py` has the command, `filters.py` the options that all share, `looking.py` what reads, `deciding.py`
what changes letters, `answers.py` how their outcome is printed.
"""
