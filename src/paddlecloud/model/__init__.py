"""What things are: values, the state table and the rules, with no I/O and no clock."""
