"""`app.audit` and `app.events`: what operators did, and what happened (S60, S76).

Both are journals. `reading.py` checks filters and reads pages, `views.py` has what callers get.
"""
