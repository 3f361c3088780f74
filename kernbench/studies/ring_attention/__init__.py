"""`ring-attention`: one attention layer whose sequence is divided over a ring of SIPs."""
