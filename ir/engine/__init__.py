"""The engine: a model planned once for known shapes, then run without allocating.

``graph`` makes nodes and values of the layers and folds constants; ``fusion`` (with ``affine``)
joins and moves them; ``memory`` lays the values into one arena, in which some are ``views`` of
others, and some (``direct``) are the caller's own arrays. Kernels write where they are told, by
``blocks`` that stay in cache: ``convolution`` (with ``products``, ``winograd`` and ``deep``),
``volumes`` and ``transposed``; ``pooling`` (with ``planar``) and ``volume_pooling``;
``matrices``, ``rows``, ``copies``, ``activations`` and ``pointwise``, which also has what is
left to the definitions.
``team`` runs their parts together with ``helpers``, or with threads that wait for ``signals``,
on ``cores`` of their own, each with one thread of ``blas``.
Images are kept with their channels last: a row of channels is then a row of a matrix, and every
copy and sum runs along contiguous memory.
"""
