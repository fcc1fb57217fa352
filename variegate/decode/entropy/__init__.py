"""Baseline JPEGs entered in their middle: an index of their Huffman code, and crops cut out of the coded file."""
