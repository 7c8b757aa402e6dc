package main

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/local/system"
)

const (
	binaryPath = "build/local/bootstrap"
	logPath    = "build/local/function.log"
)

// start builds the function and brings the system up around it. The function's log goes to logPath as well.
func start(ctx context.Context, o system.Options) (*system.System, *system.Log, error) {
	engine, err := dynamodbtest.Find(os.Getenv, ".")
	if err != nil {
		return nil, nil, err
	}
	if err := lambdatest.Build(ctx, "./functions/order", binaryPath); err != nil {
		return nil, nil, err
	}
	file, err := os.Create(filepath.Clean(logPath))
	if err != nil {
		return nil, nil, err
	}
	log := &system.Log{To: file}
	o.Binary, o.Engine, o.Output = binaryPath, engine, io.Writer(log)
	s, err := system.Start(ctx, o)
	return s, log, err
}
