"""specmatrix: does speculative decoding make *you* wait less, with the same answers, in the same memory?"""

__version__ = "0.1.0"
