"""ONNX to IR: one converter an operator, in the file of its family."""
