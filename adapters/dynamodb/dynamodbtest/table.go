package dynamodbtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Config returns a client configuration for the engine at endpoint. The region is
// AWS_REGION or us-east-1. The credentials are pretended, unless the endpoint is
// Amazon's: then they are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
func Config(endpoint string, getenv func(string) string) aws.Config {
	region := getenv("AWS_REGION")
	if region == "" {
		region = "us-east-1"
	}
	credentials := aws.Credentials{AccessKeyID: "PRETEND", SecretAccessKey: "pretend"}
	if isAmazon(endpoint) {
		credentials = aws.Credentials{
			AccessKeyID:     getenv("AWS_ACCESS_KEY_ID"),
			SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken:    getenv("AWS_SESSION_TOKEN"),
		}
	}
	return aws.Config{
		Region:       region,
		BaseEndpoint: aws.String(endpoint),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			if !credentials.HasKeys() {
				return aws.Credentials{}, errors.New("missing AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY for " + endpoint)
			}
			return credentials, nil
		}),
		// The default keeps ten idle connections per host: fifty concurrent writers would
		// measure handshakes.
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
		}),
	}
}

const idleConnections = 512

func isAmazon(endpoint string) bool {
	parsed, err := url.Parse(endpoint)
	return err == nil &&
		(strings.HasSuffix(parsed.Hostname(), ".amazonaws.com") || strings.HasSuffix(parsed.Hostname(), ".api.aws"))
}

// Expiry is the attribute by which rows of the orders table expire (Unix seconds). Only
// event rows have it, and no table of this package expires them.
const Expiry = "expiresAt"

// TableDefinition returns the definition of the orders table.
func TableDefinition(name string) *dynamodb.CreateTableInput {
	d := Definition(name, "orderId", "sk")
	addIndex(d, types.ProjectionTypeKeysOnly, "open", "openShard", "dueAt")
	d.StreamSpecification = &types.StreamSpecification{
		StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage,
	}
	return d
}

// ReceiptsDefinition returns the definition of the receipts table.
func ReceiptsDefinition(name string) *dynamodb.CreateTableInput {
	d := Definition(name, "orderId", "sk")
	addIndex(d, types.ProjectionTypeAll, "doubtful", "doubtful", "updatedAt")
	return d
}

// StockTableDefinition returns the definition of the stock table.
func StockTableDefinition(name string) *dynamodb.CreateTableInput { return Definition(name, "sku") }

// Definition returns a table with a partition key and a sort key, if there is one.
func Definition(name string, key ...string) *dynamodb.CreateTableInput {
	d := &dynamodb.CreateTableInput{TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest}
	d.KeySchema = schema(d, key)
	return d
}

func addIndex(d *dynamodb.CreateTableInput, projection types.ProjectionType, name string, key ...string) {
	d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
		IndexName: aws.String(name), KeySchema: schema(d, key),
		Projection: &types.Projection{ProjectionType: projection},
	})
}

// schema returns a key and defines its attributes, of which only shards and times are
// numbers.
func schema(d *dynamodb.CreateTableInput, key []string) (out []types.KeySchemaElement) {
	for i, name := range key {
		kind, role := types.ScalarAttributeTypeS, types.KeyTypeHash
		if name == "openShard" || name == "dueAt" || name == "updatedAt" {
			kind = types.ScalarAttributeTypeN
		}
		if i == 1 {
			role = types.KeyTypeRange
		}
		d.AttributeDefinitions = append(d.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(name), AttributeType: kind,
		})
		out = append(out, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: role})
	}
	return out
}

// Create creates a table and returns when it is active.
func Create(ctx context.Context, client *dynamodb.Client, definition *dynamodb.CreateTableInput) error {
	name := aws.ToString(definition.TableName)
	if _, err := client.CreateTable(ctx, definition); err != nil {
		return fmt.Errorf("create table %q: %w", name, err)
	}
	active := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = minPoll, maxPoll
	})
	if err := active.Wait(ctx, describe(name), maxWait); err != nil {
		return fmt.Errorf("wait for table %q: %w", name, err)
	}
	return nil
}

// DropTable deletes the table and returns when its name is free again.
func DropTable(ctx context.Context, client *dynamodb.Client, name string) error {
	if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(name)}); err != nil {
		return fmt.Errorf("delete table %q: %w", name, err)
	}
	deleted := dynamodb.NewTableNotExistsWaiter(client, func(o *dynamodb.TableNotExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = minPoll, maxPoll
	})
	if err := deleted.Wait(ctx, describe(name), maxWait); err != nil {
		return fmt.Errorf("wait for the deletion of table %q: %w", name, err)
	}
	return nil
}

// Creating a table takes milliseconds in an engine and up to a minute in a real account.
const (
	minPoll = 10 * time.Millisecond
	maxPoll = 2 * time.Second
	maxWait = 2 * time.Minute
)

func describe(name string) *dynamodb.DescribeTableInput {
	return &dynamodb.DescribeTableInput{TableName: aws.String(name)}
}
