def blend_rows(*a):
    raise NotImplementedError
