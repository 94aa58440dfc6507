/* In place of the header of cuFFT's extensions where it is not installed: what it brings along; the extensions are not computed. */
#include "cufft.h"
