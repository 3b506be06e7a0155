"""`fairlane top`: what is in the store, live in a terminal.

- `tables`: rows and columns: what is sorted, left out by a filter, and fits into a width. Knows no store.
- `views`: what each of the four views reads, in one bounded look. Knows no terminal.
- `refreshing`: when to look again, and what is known while the store does not answer.
- `board`: the screen, with textual, which is imported here and in `detail` alone.
- `detail`: everything about the selected row.
"""
