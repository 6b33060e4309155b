// Loops and inlined calls for test_structure.py, marked as in planted.c.
#include <cstdio>
#include <stdexcept>
#include <vector>

namespace app {

[[gnu::noinline]] void sink(double x) { __asm__ volatile("" : : "x"(x) : "memory"); }

template <typename Value>
struct Axpy {
    Value a;
    [[gnu::always_inline]] inline Value operator()(Value x, Value y) const {
        return a * x + y;  // in app::apply<double> all app::Axpy<double>::operator
    }
};

template <typename Value>
[[gnu::noinline]] void apply(const Value* x, Value* y, int n, Axpy<Value> f) {
    for (int i = 0; i < n; i++) {  // loop all
        y[i] = f(x[i], y[i]);      // in app::apply<double> all
    }
}

class Grid {
  public:
    explicit Grid(int n) : cells_(n, 1.0) {}
    [[gnu::noinline]] double smooth(int steps) {
        double change = 0;
        for (int step = 0; step < steps; step++) {  // loop steps
            for (double& cell : cells_) {           // loop cells
                cell = 0.5 * cell + change;         // in app::Grid::smooth steps cells
            }
            sink(change);  // in app::Grid::smooth steps
        }
        return change;
    }

  private:
    std::vector<double> cells_;
};

[[gnu::noinline]] int guarded(int n) {
    int failed = 0;
    for (int i = 0; i < n; i++) {  // loop tries
        try {
            sink(i);  // in app::guarded tries
            if (i % 7 == 3) throw std::runtime_error("seven");
        } catch (const std::runtime_error&) {
            failed++;
        }
    }
    return failed;
}

}  // namespace app

namespace {

[[gnu::noinline]] double hidden(const std::vector<double>& values) {
    auto square = [](double x) __attribute__((always_inline)) { return x * x; };
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); i++) {  // loop values
        sum += square(values[i]);
        app::sink(sum);  // in (anonymous namespace)::hidden values
    }
    return sum;
}

}  // namespace

int main(int argc, char**) {
    std::vector<double> x(100, argc), y(100, 2.0);
    app::apply(x.data(), y.data(), 100, app::Axpy<double>{2.0});
    app::Grid grid(100);
    std::printf("%g %d %g\n", grid.smooth(argc), app::guarded(argc), hidden(y));
}
