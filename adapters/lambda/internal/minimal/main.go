// Command minimal is the smallest function that this package makes: its tests start it, and it is the floor of a cold start.
package main

import (
	"context"
	"os"

	"orderonce/adapters/lambda"
)

type config struct {
	AWS      lambda.AWS
	Greeting string        `env:"GREETING,notEmpty"`
	Key      lambda.Secret `env:"KEY,notEmpty"`
	Workers  int           `env:"WORKERS" envDefault:"10"`
}

type answer struct{ Text, RequestID string }

func main() {
	if err := run(context.Background(), os.Environ()); err != nil {
		lambda.Fail(os.Stdout, err)
	}
}

func run(ctx context.Context, environ []string) error {
	config, err := lambda.ReadEnv[config](environ)
	if err != nil {
		return err
	}
	lambda.Start(ctx, func(ctx context.Context, name string) (answer, error) {
		return answer{config.Greeting + ", " + name, lambda.RequestID(ctx)}, nil
	})
	return nil
}
