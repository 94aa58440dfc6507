/* The part of the runtime that knows nothing of CUDA's headers. */
#ifndef GPA_LSP_NOTES_H
#define GPA_LSP_NOTES_H

/* Tells gpa_lsp that a function is not emulated; gives the error that its caller gets. */
__attribute__((visibility("hidden"))) int refuse(const char *name);

#endif
