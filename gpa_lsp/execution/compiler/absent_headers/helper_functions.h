/* In place of the helpers of NVIDIA's samples where a program does not bring them. */
#ifndef GPA_LSP_HELPER_FUNCTIONS_H
#define GPA_LSP_HELPER_FUNCTIONS_H
#include <assert.h>
#include <math.h>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>
#include "helper_image.h"
#include "helper_string.h"
#include "helper_timer.h"
#endif
