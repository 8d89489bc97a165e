// build: -std=c++20
// exec:
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

struct Noisy {
  const char *name;
  explicit Noisy(const char *name) : name(name) {}
  ~Noisy() { std::printf("gone: %s\n", name); }
};

static thread_local Noisy noisy("thread local");

int main() {
  std::vector<std::thread> threads;
  std::mutex mutex;
  long sum = 0;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&, i] {
      for (int j = 0; j < 100; j++) {
        std::lock_guard guard(mutex);
        sum += i;
      }
    });
  for (auto &thread : threads)
    thread.join();
  std::printf("sum %ld\n", sum);

  std::thread([] { std::printf("uses %s\n", noisy.name); }).join();

  std::condition_variable changed;
  bool go = false;
  std::thread waiter([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return go; });
    std::puts("went");
  });
  {
    std::lock_guard guard(mutex);
    go = true;
  }
  changed.notify_all();
  waiter.join();

  auto later = std::async(std::launch::async, [] { return 42; });
  std::printf("async %d\n", later.get());
  auto fails = std::async(std::launch::async, []() -> int { throw std::runtime_error("thrown there"); });
  try {
    (void)fails.get();
  } catch (const std::exception &error) {
    std::printf("caught %s\n", error.what());
  }
  std::promise<int> promise;
  auto future = promise.get_future();
  std::thread giver([&] { promise.set_value(7); });
  std::printf("promise %d\n", future.get());
  giver.join();

  std::once_flag once;
  std::atomic<int> times = 0;
  threads.clear();
  for (int i = 0; i < 3; i++)
    threads.emplace_back([&] { std::call_once(once, [&] { times++; }); });
  for (auto &thread : threads)
    thread.join();
  std::printf("once %d\n", times.load());

  std::shared_mutex shared;
  std::shared_lock first(shared), second(shared);
  std::printf("write %d\n", shared.try_lock());
  first.unlock();
  second.unlock();
  std::printf("write %d\n", shared.try_lock());
  shared.unlock();

  std::timed_mutex timed;
  timed.lock();
  std::thread([&] { std::printf("timed %d\n", timed.try_lock_for(5ms)); }).join();
  timed.unlock();
  std::recursive_mutex recursive;
  recursive.lock();
  std::printf("recursive %d\n", recursive.try_lock());
  recursive.unlock();
  recursive.unlock();

  std::atomic<int> word = 0;
  std::thread setter([&] {
    word = 5;
    word.notify_one();
  });
  word.wait(0);
  std::printf("word %d\n", word.load());
  setter.join();
  auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(20ms);
  std::printf("slept %d\n", std::chrono::steady_clock::now() - start >= 20ms);
  return 0;
}
