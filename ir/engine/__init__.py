"""The engine: a model planned once for known shapes, then run without allocating.

``graph`` makes nodes and values of the layers and folds constants; ``fusion`` joins and moves
them; ``memory`` lays the values into one arena; ``convolution`` (with ``winograd``),
``pooling`` (with ``planar``) and ``pointwise`` prepare kernels that write where they are told,
by ``blocks`` that stay in cache; ``team`` runs their parts on several threads. Images are kept
with their channels last: a row of channels is then a row of a matrix, and every copy and sum
runs along contiguous memory.
"""
