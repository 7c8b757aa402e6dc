# Mocked values have the form that AWS gives them, because the provider parses ARNs and
# policies even in a test. The mocks are repeated in each file, because OpenTofu has no
# mock_provider that reads them from a folder.
mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }

  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }

  mock_data "aws_region" {
    defaults = { region = "eu-west-1" }
  }

  mock_resource "aws_sqs_queue" {
    defaults = {
      arn = "arn:aws:sqs:eu-west-1:123456789012:queue"
      url = "https://sqs.eu-west-1.amazonaws.com/123456789012/queue"
    }
  }

  mock_resource "aws_dynamodb_table" {
    defaults = {
      arn        = "arn:aws:dynamodb:eu-west-1:123456789012:table/table"
      stream_arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/table/stream/2026-01-01T00:00:00.000"
    }
  }

  mock_resource "aws_secretsmanager_secret" {
    defaults = {
      id  = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
      arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
    }
  }

  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/role" }
  }

  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:group" }
  }

  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:function", version = "7" }
  }

  mock_resource "aws_lambda_alias" {
    defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:function:live" }
  }

  mock_resource "aws_lambda_event_source_mapping" {
    defaults = { uuid = "00000000-0000-4000-8000-000000000000" }
  }
}

# `make tf` runs this file with -verbose and looks for the canary in every plan and state
# that it prints.
variables {
  package_dir       = "tests/packages"
  stripe_secret_key = "sk_test_canary"
}

run "no_attribute_or_output_contains_the_key" {
  assert {
    condition = (
      aws_secretsmanager_secret_version.stripe.secret_string == null
      && aws_secretsmanager_secret_version.stripe.secret_binary == null
    )
    error_message = "the key is in an argument that is stored in the state"
  }

  assert {
    condition     = aws_secretsmanager_secret_version.stripe.secret_string_wo_version == 1
    error_message = "secret_string_wo_version: must be stripe_secret_version"
  }

  assert {
    condition = !strcontains(nonsensitive(jsonencode([
      aws_secretsmanager_secret.stripe, aws_secretsmanager_secret_version.stripe,
      aws_lambda_function.functions, aws_lambda_alias.live, aws_lambda_event_source_mapping.orders,
      aws_sqs_queue.orders, aws_sqs_queue_policy.orders,
      aws_sqs_queue.dead_letters, aws_sqs_queue_policy.dead_letters,
      aws_sqs_queue_redrive_allow_policy.dead_letters,
      aws_dynamodb_table.orders,
      aws_iam_role.functions, aws_iam_role_policy.order, aws_iam_role_policy.keys,
      aws_cloudwatch_log_group.functions, aws_cloudwatch_metric_alarm.alarms, aws_cloudwatch_dashboard.orders,
    ])), "canary")
    error_message = "an attribute contains the Stripe key"
  }

  assert {
    condition = !strcontains(jsonencode([
      output.scope, output.order_queue_url, output.order_queue_arn, output.dead_letter_queue_url,
      output.dead_letter_queue_arn,
      output.orders_table, output.stripe_secret_arn, output.function_aliases, output.dashboard,
      output.function_role_arns, output.log_groups, output.event_source_mapping_uuid,
      output.orders_table_arn, output.orders_stream_arn,
      output.operator_environment,
    ]), "canary")
    error_message = "an output contains the Stripe key"
  }
}

run "a_rotation_raises_the_version" {
  variables {
    stripe_secret_key     = "sk_test_canary_2"
    stripe_secret_version = 2
  }

  assert {
    condition     = aws_secretsmanager_secret_version.stripe.secret_string_wo_version == 2
    error_message = "secret_string_wo_version: a raised version must store the new key"
  }
}

run "later_applies_need_no_key" {
  command = plan # Terraform 1.11 rejects a null ephemeral variable in a test that applies

  variables {
    stripe_secret_key     = null
    stripe_secret_version = 2
  }

  assert {
    condition     = aws_secretsmanager_secret_version.stripe.secret_string_wo_version == 2
    error_message = "secret_string_wo_version: changed without a new version"
  }
}

run "the_function_s_environment_has_no_key" {
  assert {
    condition = (
      !contains(keys(aws_lambda_function.functions["order"].environment[0].variables), "STRIPE_SECRET_KEY")
    )
    error_message = "environment: contains the Stripe key"
  }
}

run "a_secret_can_be_deleted_without_recovery" {
  command = plan

  variables {
    secret_recovery_days = 0
  }

  assert {
    condition     = aws_secretsmanager_secret.stripe.recovery_window_in_days == 0
    error_message = "secret_recovery_days: ignored"
  }
}
