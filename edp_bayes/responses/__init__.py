"""What a query returned on every database, with and without each individual."""
