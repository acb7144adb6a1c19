"""Reading responses, references and contexts from files and Python objects, and listing what is wrong with them."""
