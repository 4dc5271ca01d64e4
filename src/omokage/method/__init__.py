"""The method, which knows no medium: maps, groupers, what a group becomes, noise, and the pipeline that joins them."""
