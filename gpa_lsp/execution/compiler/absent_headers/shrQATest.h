/* In place of the helpers of NVIDIA's samples of CUDA 4 where a program does not bring them: how a sample tells that it passed. */
#ifndef GPA_LSP_SHR_QA_TEST_H
#define GPA_LSP_SHR_QA_TEST_H
#include <stdio.h>
#include <stdlib.h>

enum eQAstatus { QA_FAILED = 0, QA_PASSED = 1, QA_WAIVED = 2 };
static const char *const gpa_lsp_statuses[] = {"FAILED", "PASSED", "WAIVED"};
static inline void shrQAStart(int count, char **words) {
    (void)count;
    printf("[%s] starting...\n", words[0]);
}
static inline void shrQAFinish(int count, const char **words, int status) {
    (void)count;
    printf("[%s] test results...\n%s\n", words[0], gpa_lsp_statuses[status < 0 || status > 2 ? 0 : status]);
}
static inline void shrQAFinishExit(int count, const char **words, int status) {
    shrQAFinish(count, words, status);
    exit(status == QA_PASSED ? EXIT_SUCCESS : EXIT_FAILURE);
}
#endif
