"""`app.dead`: what people see of dead letters, and what they decide about them (S75).

`dead_letters.py` is the face. `reading.py` finds, counts and exports, `deciding.py` changes one letter,
`bulk.py` all that match. `reprocessing.py` builds the job that runs in place of a dead one, `causes.py` adds
up what letters have in common, `views.py` has what callers get.
"""
