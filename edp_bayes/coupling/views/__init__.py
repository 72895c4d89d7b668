"""The same coupling for some draws, some individuals, or what is published of an answer."""
