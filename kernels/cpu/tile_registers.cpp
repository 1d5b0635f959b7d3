#include "kernels/cpu/tile_registers.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::cpu {
namespace {

constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of <asm/prctl.h>, which older headers lack
constexpr int kTileData = 18;               // XFEATURE_XTILEDATA; 17 is the registers' shapes

bool processor_has_them() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned kAmxTile = 1u << 24, kAmxInt8 = 1u << 25;
  return (edx & kAmxTile) != 0 && (edx & kAmxInt8) != 0;
}

// Which register sets the operating system saves.
unsigned xcr0() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kOsXsave = 1u << 27;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsXsave) == 0) return 0;
  asm volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return eax;
}

TileRegisters ask() {
  constexpr unsigned kTiles = 1u << (kTileData - 1) | 1u << kTileData;
  if (!processor_has_them() || (xcr0() & kTiles) != kTiles) return TileRegisters::missing;
  const bool granted = ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted ? TileRegisters::granted : TileRegisters::refused;
}

}  // namespace

TileRegisters tile_registers() {
  static const TileRegisters answer = ask();
  return answer;
}

}  // namespace troupe::cpu
