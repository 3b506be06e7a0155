"""Who may use the web: users, tokens, sessions, and how somebody signs in (S79-S81).

`app.users`, `app.tokens` and `app.sessions` are for operators. `SignIn` is for a server: it turns a password,
a link, a cookie or a bearer token into a `Principal`, or into nobody.
"""
