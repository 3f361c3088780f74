"""Values that the model must give: closed forms (`theory`), and `checks` that compare the two."""
