"""Who holds how much of the slots that tenants share, and what is fair (S93, S94)."""
