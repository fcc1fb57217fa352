// Finished rows into their result.
#pragma once
#include "executor.h"

namespace vg {
namespace VG_LEVEL {

// Stores row `y`.
void store_row(Planes planes, i64 y, const Target &target);

}  // namespace VG_LEVEL
}  // namespace vg
