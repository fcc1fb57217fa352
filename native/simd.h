// Intrinsics of the processor that this file is compiled for.
#pragma once
#include "core.h"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
