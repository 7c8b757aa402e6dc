package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

// cleaning is `conform clean`.
type cleaning struct {
	Yes     bool          `help:"Do not ask."`
	Account cloud.Account `embed:"" group:"AWS"`
}

// leftover is something that a run made and did not remove.
type leftover struct {
	kind, name string
	remove     func(context.Context) error
}

// isOf reports whether a stack made it and removes it.
func (l leftover) isOf(s leftover) bool {
	return s.kind == "stack" && strings.Contains(l.name, s.name+"-")
}

// Run removes what runs that were killed have left in the account and region.
func (c cleaning) Run(ctx context.Context, sh shell.Shell) error {
	config, err := c.Account.Load(ctx)
	if err != nil {
		return err
	}
	config = awsConfig(config, &http.Client{Timeout: time.Minute})
	var all []leftover
	for _, find := range []func(context.Context, aws.Config) ([]leftover, error){mappingsLeft, stacksLeft, queuesLeft, tablesLeft} {
		found, err := find(ctx, config)
		if err != nil {
			return err
		}
		for _, l := range found {
			if !slices.ContainsFunc(all, l.isOf) {
				all = append(all, l)
			}
		}
	}
	for _, l := range all {
		fmt.Fprintln(sh.People(), l.kind, l.name)
	}
	if len(all) == 0 {
		return sh.Result(fmt.Sprintf("nothing is left: no name in %s begins with %s\n", config.Region, prefix), all)
	}
	if !c.Yes && !sh.Confirms(fmt.Sprintf("Type \"remove\" to remove these %d: ", len(all)), "remove") {
		return shell.ErrNotConfirmed
	}
	for _, l := range all {
		if removed := l.remove(ctx); removed != nil {
			err = errors.Join(err, fmt.Errorf("remove %s %s: %w", l.kind, l.name, removed))
		}
	}
	return err
}

func queuesLeft(ctx context.Context, config aws.Config) (all []leftover, err error) {
	client := sqs.NewFromConfig(config)
	for pages := sqs.NewListQueuesPaginator(client, &sqs.ListQueuesInput{
		QueueNamePrefix: aws.String(prefix), MaxResults: aws.Int32(1000),
	}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, url := range page.QueueUrls {
			all = append(all, leftover{"queue", url, func(ctx context.Context) error {
				_, err := client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url})
				return err
			}})
		}
	}
	return all, nil
}

func tablesLeft(ctx context.Context, config aws.Config) (all []leftover, err error) {
	client := dynamodb.NewFromConfig(config)
	for pages := dynamodb.NewListTablesPaginator(client, &dynamodb.ListTablesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range page.TableNames {
			if strings.HasPrefix(name, prefix) {
				all = append(all, leftover{"table", name, func(ctx context.Context) error {
					_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
					return err
				}})
			}
		}
	}
	return all, nil
}

// stacksLeft finds stacks. AWS lists those that are being deleted too.
func stacksLeft(ctx context.Context, config aws.Config) (all []leftover, err error) {
	client := cloudformation.NewFromConfig(config)
	for pages := cloudformation.NewDescribeStacksPaginator(client, &cloudformation.DescribeStacksInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range page.Stacks {
			if name := aws.ToString(s.StackName); strings.HasPrefix(name, prefix) {
				left := &stack{client: client, name: name}
				all = append(all, leftover{"stack", name, left.close})
			}
		}
	}
	return all, nil
}

// mappingsLeft finds mappings to a function of a stack, which stay without it.
func mappingsLeft(ctx context.Context, config aws.Config) (all []leftover, err error) {
	client := lambda.NewFromConfig(config)
	for pages := lambda.NewListEventSourceMappingsPaginator(client, &lambda.ListEventSourceMappingsInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range page.EventSourceMappings {
			if strings.Contains(aws.ToString(m.FunctionArn), prefix) {
				all = append(all, leftover{"mapping", aws.ToString(m.UUID), func(ctx context.Context) error {
					_, err := client.DeleteEventSourceMapping(ctx, &lambda.DeleteEventSourceMappingInput{UUID: m.UUID})
					return err
				}})
			}
		}
	}
	return all, nil
}
