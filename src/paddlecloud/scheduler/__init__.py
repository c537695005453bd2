"""Who runs where: reads records, decides by writing records, then makes each backend match the records."""
