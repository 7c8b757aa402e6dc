package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// stackTemplate has what the rules of Lambda and API Gateway need: a function that does
// what its event says, its role, and an HTTP API. As one stack it is created and deleted
// whole.
//
//go:embed stack.yaml
var stackTemplate string

const stackTime = 10 * time.Minute

type stack struct {
	client *cloudformation.Client
	lambda *lambda.Client
	name   string
	output map[string]string // function: its name, api: its URL
}

// openStack creates a stack and waits for it. What cannot be created whole is deleted.
func openStack(ctx context.Context, config aws.Config, name string) (s *stack, err error) {
	s = &stack{
		client: cloudformation.NewFromConfig(config), lambda: lambda.NewFromConfig(config),
		name: name, output: map[string]string{},
	}
	if _, err := s.client.CreateStack(context.WithoutCancel(ctx), &cloudformation.CreateStackInput{
		StackName: &name, TemplateBody: &stackTemplate, OnFailure: types.OnFailureDelete,
		Capabilities: []types.Capability{types.CapabilityCapabilityIam},
		Tags:         []types.Tag{{Key: aws.String("orderonce"), Value: aws.String("conform")}},
	}); err != nil {
		return nil, fmt.Errorf("create stack %s: %w", name, err)
	}
	created, err := cloudformation.NewStackCreateCompleteWaiter(s.client).WaitForOutput(ctx, s.describe(), stackTime)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create stack %s: %w", name, err), s.close(ctx))
	}
	for _, o := range created.Stacks[0].Outputs {
		s.output[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	return s, nil
}

func (s *stack) describe() *cloudformation.DescribeStacksInput {
	return &cloudformation.DescribeStacksInput{StackName: &s.name}
}

// Connect implements Lambda.
func (s *stack) Connect(ctx context.Context, queueARN string, size int) (func(context.Context) error, error) {
	made, err := s.lambda.CreateEventSourceMapping(context.WithoutCancel(ctx), &lambda.CreateEventSourceMappingInput{
		FunctionName: aws.String(s.output["function"]), EventSourceArn: &queueARN,
		BatchSize:             aws.Int32(int32(size)), //nolint:gosec // G115: 10 at most
		FunctionResponseTypes: []lambdatypes.FunctionResponseType{lambdatypes.FunctionResponseTypeReportBatchItemFailures},
	})
	if err != nil {
		return nil, fmt.Errorf("map %s to the function: %w", queueARN, err)
	}
	disconnect := func(ctx context.Context) error {
		_, err := s.lambda.DeleteEventSourceMapping(ctx, &lambda.DeleteEventSourceMappingInput{UUID: made.UUID})
		return err
	}
	for state := made.State; aws.ToString(state) != "Enabled"; {
		if err := (World{}).Pass(ctx, 2*time.Second); err != nil {
			return nil, errors.Join(err, disconnect(context.WithoutCancel(ctx)))
		}
		is, err := s.lambda.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: made.UUID})
		if err != nil {
			return nil, errors.Join(err, disconnect(context.WithoutCancel(ctx)))
		}
		state = is.State
	}
	return disconnect, nil
}

// close deletes the stack, also after Ctrl-C.
func (s *stack) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stackTime)
	defer cancel()
	_, err := s.client.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: &s.name})
	if err == nil {
		err = cloudformation.NewStackDeleteCompleteWaiter(s.client).Wait(ctx, s.describe(), stackTime)
	}
	if err != nil {
		return fmt.Errorf("delete stack %s: %w", s.name, err)
	}
	return nil
}
