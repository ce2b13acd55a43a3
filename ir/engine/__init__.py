"""The engine: a model planned once for known shapes, then run without allocating.

``graph`` makes nodes and values of the layers, folds constants and joins what can be computed
in one go; ``memory`` lays the values into one arena; ``convolution``, ``pooling`` and
``pointwise`` prepare kernels that write where they are told; ``team`` runs their parts on
several threads. Images are kept with their channels last: a row of channels is then a row of
a matrix, and every copy and sum runs along contiguous memory.
"""
