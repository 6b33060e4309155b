"""Jobs that measure, whatever for: where they run, what they write, and how samples are judged."""
