"""Flash attention and its gradient: loops of one PE in which scores stay in TCM.

`online_softmax` is their arithmetic, `flash` the loop of the forward pass, `gradient_loop` that of
both gradients.
"""
