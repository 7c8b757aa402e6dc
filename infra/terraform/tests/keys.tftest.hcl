mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  stripe_read_key_version = 1
}

run "a_read_only_key_is_for_the_functions_that_move_no_money" {
  # The mocks give every secret one ARN. In runs, because OpenTofu applies what a file
  # overrides to all later files as well.
  override_resource {
    target = aws_secretsmanager_secret.stripe
    values = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:writes-AbCdEf" }
  }

  override_resource {
    target = aws_secretsmanager_secret.stripe_read
    values = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:reads-AbCdEf" }
  }

  assert {
    condition = { for name, function in aws_lambda_function.functions :
      name => regex("secret:([a-z]+)", function.environment[0].variables.STRIPE_SECRET_ARN)[0]
      if can(function.environment[0].variables.STRIPE_SECRET_ARN)
    } == { order = "writes", webhook = "reads", reconcile = "reads" }
    error_message = "STRIPE_SECRET_ARN: only the order function may have the key that charges"
  }

  assert {
    condition = (
      !strcontains(aws_iam_role_policy.webhook[0].policy, "secret:writes")
      && !strcontains(aws_iam_role_policy.reconcile.policy, "secret:writes")
      && !strcontains(aws_iam_role_policy.order.policy, "secret:reads")
      && strcontains(aws_lambda_function.functions["webhook"].description, "Read key 1.")
      && strcontains(aws_lambda_function.functions["order"].description, " Key 1.")
    )
    error_message = "a role reads the other key, or a rotation would not publish the function"
  }
}

run "with_stock_reconcile_cancels_and_needs_the_key_that_writes" {
  override_resource {
    target = aws_secretsmanager_secret.stripe
    values = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:writes-AbCdEf" }
  }

  variables {
    stock_tracking = true
  }

  assert {
    condition = strcontains(
      aws_lambda_function.functions["reconcile"].environment[0].variables.STRIPE_SECRET_ARN, "secret:writes"
    )
    error_message = "reconcile: could not cancel what holds goods"
  }
}

run "without_a_read_only_key_nothing_is_created_for_it" {
  variables {
    stripe_read_key_version = 0
  }

  assert {
    condition = (
      length(aws_secretsmanager_secret.stripe_read) == 0
      && length(aws_secretsmanager_secret_version.stripe_read) == 0
      && strcontains(aws_lambda_function.functions["webhook"].description, " Key 1.")
    )
    error_message = "stripe_read_key: must be off by default, and leave the other functions as they were"
  }
}
