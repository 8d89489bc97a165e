// The same program at several levels of optimisation. All sums are exact, so that their order does not matter.
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  int rows, columns;
  double *cells;
} matrix;

static matrix make(int rows, int columns) {
  return (matrix){rows, columns, calloc((size_t)(rows * columns), sizeof(double))};
}

static matrix multiply(matrix a, matrix b) {
  matrix product = make(a.rows, b.columns);
  for (int i = 0; i < a.rows; i++)
    for (int j = 0; j < b.columns; j++) {
      double sum = 0;
      for (int k = 0; k < a.columns; k++)
        sum += a.cells[i * a.columns + k] * b.cells[k * b.columns + j];
      product.cells[i * b.columns + j] = sum;
    }
  return product;
}

static double trace(matrix a) {
  double sum = 0;
  for (int i = 0; i < a.rows && i < a.columns; i++)
    sum += a.cells[i * a.columns + i];
  return sum;
}

int main(void) {
  matrix a = make(17, 13), b = make(13, 17);
  for (int i = 0; i < 17 * 13; i++) {
    a.cells[i] = i % 7 - 3;
    b.cells[i] = (i * 5) % 11 * 0.25;
  }
  matrix product = multiply(a, b), square = multiply(product, product);
  printf("%g %g\n", trace(product), trace(square));
  for (int i = 0; i < 17; i++)
    printf("%g ", square.cells[i * 17 + (i * 3) % 17]);
  puts("");
  free(a.cells);
  free(b.cells);
  free(product.cells);
  free(square.cells);
  return 0;
}
