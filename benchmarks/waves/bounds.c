/* As many additions and multiplications as a core does, each spelled out, as in minga's kernels: twelve vectors that
   depend on themselves alone, enough for the latencies of today's pipelines.

   w = rounds, the address of a float that receives the sum. */

#include <stdint.h>

typedef int64_t word;
#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif
#define CHAINS 12
typedef float vector __attribute__((vector_size(4 * LANES)));

/* Operations of one round. */
long round_flops(void) { return CHAINS * LANES; }

void peak_f4(const word *w) {
    volatile float hidden = 1.0f; /* else x * 1 is left out; other factors end in denormals */
    const float one = hidden;
    vector a[CHAINS], factor, term;
    for (int lane = 0; lane < LANES; lane++) {
        factor[lane] = one;
        term[lane] = 1e-3f * one;
        for (int n = 0; n < CHAINS; n++) a[n][lane] = (float)n;
    }
    for (word round = 0; round < w[0]; round++) {
#pragma GCC unroll 12
        for (int n = 0; n < CHAINS; n += 2) {
            a[n] = a[n] * factor;
            a[n + 1] = a[n + 1] + term;
        }
    }
    float total = 0;
    for (int n = 0; n < CHAINS; n++)
        for (int lane = 0; lane < LANES; lane++) total += a[n][lane];
    *(float *)w[1] = total;
}
