// Nearest rows by nanoflann, timed here, for the benchmark `match_search`.
//
// argv: rows file, queries file (f32, row after row), columns, passes.
// Prints: build seconds, used bytes, then for every query its least microseconds,
// and last the sum of distances, to be held against the other methods.
#include <nanoflann.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static std::vector<float> read_floats(const char *path) {
    FILE *file = std::fopen(path, "rb");
    if (!file) std::exit(2);
    std::fseek(file, 0, SEEK_END);
    std::vector<float> values(std::ftell(file) / sizeof(float));
    std::rewind(file);
    if (std::fread(values.data(), sizeof(float), values.size(), file) != values.size()) std::exit(2);
    std::fclose(file);
    return values;
}

struct Rows {
    const std::vector<float> &values;
    int columns;
    size_t kdtree_get_point_count() const { return values.size() / columns; }
    float kdtree_get_pt(size_t row, size_t column) const { return values[row * columns + column]; }
    template <class Box> bool kdtree_get_bbox(Box &) const { return false; }
};

int main(int, char **argv) {
    using Clock = std::chrono::steady_clock;
    using Tree = nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Adaptor<float, Rows>, Rows, -1, uint32_t>;
    const std::vector<float> values = read_floats(argv[1]), queries = read_floats(argv[2]);
    const int columns = std::atoi(argv[3]), passes = std::atoi(argv[4]);
    Rows rows{values, columns};
    auto begin = Clock::now();
    Tree tree(columns, rows, {10});
    tree.buildIndex();
    std::printf("%.6f %zu\n", std::chrono::duration<double>(Clock::now() - begin).count(), tree.usedMemory(tree));
    const size_t count = queries.size() / columns;
    std::vector<double> least(count, 1e18);
    double sum = 0;
    for (int pass = 0; pass < passes; ++pass) {
        sum = 0;
        for (size_t i = 0; i < count; ++i) {
            uint32_t row;
            float distance;
            auto start = Clock::now();
            tree.knnSearch(&queries[i * columns], 1, &row, &distance);
            least[i] = std::min(least[i], std::chrono::duration<double, std::micro>(Clock::now() - start).count());
            sum += distance;
        }
    }
    for (double us : least) std::printf("%.3f\n", us);
    std::printf("%.9g\n", sum);
}
