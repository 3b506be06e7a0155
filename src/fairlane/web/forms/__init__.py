"""Forms: inputs made from a task's schema, what comes back from them, and the message that follows."""
