"""Differences from PyTorch that may be: a pattern of the line `class: call → what differs`, and the reason."""

LAPACK = r"torch\.linalg\.|(torch|Tensor)\.(svd|qr|lu|cholesky|geqrf|orgqr|ormqr|inverse|pinverse|lu_solve|triangular_solve|matrix_power|slogdet|lu_unpack)"
MIXED = r"<[^>]*(transposed|sliced|expanded|offset)"

ALLOWED: list[tuple[str, str]] = [
    (rf"strides: ({LAPACK})", "LAPACK's results are column by column in PyTorch; where theirs lie in memory is no part of what linalg promises"),
    (r"strides: (torch\.fft\.|torch\.(stft|istft))", "MKL's transforms leave axes in another order in memory than pocketfft's"),
    (rf"strides: .*{MIXED}", "of operands of several layouts, or of one that is not dense, NumPy gives the result another order in memory"),
    (r"as_strided_scatter.*gradients", "PyTorch's gradient of the input is that of the elements written over; central differences give ours"),
    (r"gradients: .*ldexp", "PyTorch computes 2 ** other in integers, where negative powers are 0; central differences give ours"),
    (r"gradients: .*cholesky_(inverse|solve)", "only one triangle of the factor is read: the other has no gradient"),
    (r"(ctc_loss).*values", "targets that are the blank are not defined"),
    (r"values: torch\.linalg\.eigh|values: (torch|Tensor)\.svd", "vectors are known up to their sign"),
    (r"values: (torch|Tensor)\.(pinverse|geqrf|qr|std|matrix_exp|addcdiv|addcmul|ldexp_)|values: torch\.(linalg\.(pinv|matrix_exp|qr)|fft\.irfftn)",
     "ill-conditioned, or beyond the range of the dtype on the way: what comes of it depends on the order of the sums"),
    (r"gradients: .*(1e\+30|1e-30|inf|nan|\(0\.0,\)|9223372036854775|-2\.0, -1\.0, -3\.0|\(100, 0\)|\(-1, 2\))",
     "a gradient at a singular place, or beyond the range of the dtype: which of nan, inf and 0 comes depends on the order of operations"),
    (r"requires_grad False for True", "the gradient that PyTorch promises raises an error, or is zero"),
    (r"(values|missing error): .*unique_consecutive", "PyTorch takes positional flags of unique_consecutive for one another"),
    (r"values: .*(kthvalue|median)", "which of equal elements is named is not defined; of an empty row there is none"),
    (r"values: (torch|Tensor)\.(i0|sinc|sinc_|searchsorted|logit|logit_)\(|values: .*_polynomial_",
     "at infinite, NaN or unsorted values, or with bounds the wrong way round"),
    (r"values: Tensor\.(resize_|resize_as_)", "what memory holds that was not written is not defined"),
    (r"values: .*multinomial", "of float16 or of transposed weights, random numbers are drawn in another order"),
    (r"(values|gradients): .*(cosine_similarity|xlogy_|__ipow__|log_softmax|atan2).*bfloat16", "bfloat16 is rounded in other places"),
    (r"Trying to resize storage that is not resizable", "the memory that PyTorch borrows from NumPy here cannot be resized; ours can"),
    (r"extra error: .*leaf Variable that requires grad", "a leaf that requires a gradient is refused before anything else is looked at"),
    (r"Intel oneMKL", "a restriction of the library that PyTorch is built with"),
    (r"contained non-finite values", "PyTorch's LAPACK answers infinities with NaN; others, as ours, do not converge"),
    (r"offsets must not decrease", "PyTorch reads bags backwards, or raises, as its path has it; ours are refused"),
    (r"hang: .*(adaptive_max_pool|tensor_split|_polynomial_)", "sizes and degrees that take more time than there is"),
]
