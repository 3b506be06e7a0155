"""When a schedule makes jobs: instants, words, and what is due. Knows no clock and no store.

timing     the three ways to say when: Cron, Every, At
slots      the instants of a timing, through changes of the clock
problems   what is wrong with a timing, all at once
words      a timing in words
firing     which instants a schedule uses now, and which it has missed
spec       what a schedule says
records    what is kept of a schedule and of its slots
kept       what is kept after a change
news       what happened, as events
origin     which schedule and slot a job comes from
"""
