// Whether this process may use the tile registers of AMX.
#pragma once

namespace troupe::cpu {

enum class TileRegisters {
  missing,  // the processor (or the hypervisor, or the operating system's XCR0) has no int8 tiles
  refused,  // the operating system keeps them from this process
  granted,
};

// Linux gives a process the registers, 8 KB of state for each thread that touches them, only if it asks (5.16 or
// later). Asked once, at the first call; the answer holds for all threads, those that run already included.
TileRegisters tile_registers();

}  // namespace troupe::cpu
