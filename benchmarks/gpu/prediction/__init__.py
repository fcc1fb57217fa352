"""What W3 would take on GPUs that are not here: from the machine code that is compiled ahead for them."""
