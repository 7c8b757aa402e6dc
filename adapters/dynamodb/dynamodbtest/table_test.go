package dynamodbtest_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

func TestTheTableHasItsDefinition(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	described, err := h.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &h.Table})
	if err != nil {
		t.Fatal(err)
	}
	table := described.Table
	if table.TableStatus != types.TableStatusActive {
		t.Errorf("got status %s, want ACTIVE", table.TableStatus)
	}
	got := &dynamodb.CreateTableInput{
		TableName:            table.TableName,
		BillingMode:          table.BillingModeSummary.BillingMode,
		AttributeDefinitions: table.AttributeDefinitions,
		KeySchema:            table.KeySchema,
		StreamSpecification:  table.StreamSpecification,
	}
	for _, index := range table.GlobalSecondaryIndexes {
		got.GlobalSecondaryIndexes = append(got.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: index.IndexName, KeySchema: index.KeySchema, Projection: index.Projection,
		})
	}
	byName := cmpopts.SortSlices(func(a, b types.AttributeDefinition) bool {
		return *a.AttributeName < *b.AttributeName
	})
	exported := cmpopts.IgnoreUnexported(
		dynamodb.CreateTableInput{}, types.AttributeDefinition{}, types.KeySchemaElement{},
		types.GlobalSecondaryIndex{}, types.Projection{}, types.StreamSpecification{},
	)
	if diff := cmp.Diff(dynamodbtest.TableDefinition(h.Table), got, byName, exported); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}

	expiry, err := h.Client.DescribeTimeToLive(
		t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &h.Table},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := aws.ToString(expiry.TimeToLiveDescription.AttributeName); got != "expiresAt" {
		t.Errorf("got time to live attribute %q, want expiresAt", got)
	}
}

func TestWithoutStream(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	name := h.Table + "-plain"
	if err := dynamodbtest.CreateTable(t.Context(), h.Client, name, dynamodbtest.WithoutStream); err != nil {
		t.Fatal(err)
	}
	described, err := h.Client.DescribeTable(
		t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(name)},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := described.Table.StreamSpecification; got != nil && aws.ToBool(got.StreamEnabled) {
		t.Errorf("got stream %v, want none", got.StreamViewType)
	}
}

func TestTheNameOfADroppedTableIsFree(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	name := h.Table + "-again"
	for range 2 {
		if err := dynamodbtest.CreateTable(t.Context(), h.Client, name); err != nil {
			t.Fatal(err)
		}
		if err := dynamodbtest.DropTable(t.Context(), h.Client, name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTableErrorsNameTheTable(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	err := dynamodbtest.CreateTable(t.Context(), h.Client, h.Table)
	if _, taken := errors.AsType[*types.ResourceInUseException](err); !taken {
		t.Errorf("got %v, want ResourceInUseException", err)
	}
	err = dynamodbtest.DropTable(t.Context(), h.Client, h.Table+"-nothing")
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); !missing {
		t.Errorf("got %v, want ResourceNotFoundException", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	environment := map[string]string{
		"AWS_ACCESS_KEY_ID":     "REAL",
		"AWS_SECRET_ACCESS_KEY": "pretend",
		"AWS_REGION":            "eu-central-1",
	}
	tests := map[string]struct {
		endpoint, wantKey, wantRegion string
		environment                   map[string]string
	}{
		"an engine gets pretended credentials": {
			endpoint: "http://127.0.0.1:8000", wantKey: "PRETEND", wantRegion: "us-east-1",
		},
		"an engine does not get the credentials of the environment": {
			endpoint: "http://127.0.0.1:8000", environment: environment, wantKey: "PRETEND", wantRegion: "eu-central-1",
		},
		"a host with a similar name gets pretended credentials": {
			endpoint: "http://amazonaws.com.example", environment: environment, wantKey: "PRETEND", wantRegion: "eu-central-1",
		},
		"Amazon gets the credentials of the environment": {
			endpoint: "https://dynamodb.eu-central-1.amazonaws.com", environment: environment, wantKey: "REAL", wantRegion: "eu-central-1",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := dynamodbtest.Config(tt.endpoint, func(name string) string { return tt.environment[name] })
			credentials, err := config.Credentials.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if credentials.AccessKeyID != tt.wantKey || config.Region != tt.wantRegion {
				t.Errorf("got %s in %s, want %s in %s", credentials.AccessKeyID, config.Region, tt.wantKey, tt.wantRegion)
			}
		})
	}
}

func TestAmazonWithoutCredentialsIsAnError(t *testing.T) {
	t.Parallel()
	config := dynamodbtest.Config("https://dynamodb.eu-central-1.amazonaws.com", noEnvironment)
	if _, err := config.Credentials.Retrieve(t.Context()); err == nil {
		t.Error("got no error, want one")
	}
}
