// Command minimal is the smallest function that package lambda can start. The tests of
// the package run it in a Runtime API host.
package main

import (
	"context"
	"errors"
	"os"

	"orderonce/adapters/lambda"
)

type answer struct{ Text, RequestID string }

func main() {
	greeting := os.Getenv("GREETING")
	if greeting == "" {
		lambda.Fail(os.Stdout, errors.New("GREETING: missing"))
	}
	lambda.Start(context.Background(), func(ctx context.Context, name string) (answer, error) {
		return answer{greeting + ", " + name, lambda.RequestID(ctx)}, nil
	})
}
