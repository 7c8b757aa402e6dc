package main

import (
	"context"
	"errors"
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

// local is a running system with the log of its function.
type local struct {
	*system.System

	log  *system.Log
	file *os.File
}

// Close ends the system, which writes to the file until then, and closes the file.
func (l *local) Close() error { return errors.Join(l.System.Close(), l.file.Close()) }

// start builds the function and brings the system up around it. The function's log goes to logPath as well.
func start(ctx context.Context, o system.Options) (*local, error) {
	engine, err := dynamodbtest.Find(os.Getenv, ".")
	if err != nil {
		return nil, err
	}
	if err := lambdatest.Build(ctx, "./functions/order", binaryPath); err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Clean(logPath))
	if err != nil {
		return nil, err
	}
	log := &system.Log{To: file}
	o.Binary, o.Engine, o.Output = binaryPath, engine, log
	s, err := system.Start(ctx, o)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &local{s, log, file}, nil
}
